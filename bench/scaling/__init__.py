"""`make bench-scaling`: our default policy against the rules of others, on real and other load."""
