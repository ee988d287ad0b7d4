"""The agent handle: a session with an inbox, a scope of its own, and a driver that runs its turns."""
