"""Every random bit of our own: exact samplers, from the operating system's CSPRNG."""
