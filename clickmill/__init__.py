"""The command line: one function a command, which declares its options once and calls the room that does the work.

What a command needs for its work it imports when it runs, so that help and wrong arguments are answered at once.
"""
