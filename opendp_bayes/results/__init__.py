"""What the analyst holds: releases, their pictures and frames. Reads what was drawn, never data."""
