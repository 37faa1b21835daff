"""`make bench-peers`: sprat beside other queues, on the same private servers, in the same run."""
