"""A report that can be published: its specification, and the page of what was released."""
