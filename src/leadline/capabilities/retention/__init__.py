"""What is kept of sessions, runs and blobs, for how long, and how it leaves or enters the home directory."""
