"""The command line: each command drives the same handles and reads the same log as every other surface."""
