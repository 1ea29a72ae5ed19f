"""Questions: columns and their public values, groups, joint tables, levels, surveys."""
