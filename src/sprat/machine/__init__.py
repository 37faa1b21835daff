"""YAML machines: loading and checking them, templates, and stepping from state to state. Pure: what
touches a store or starts a process is in machine_room."""
