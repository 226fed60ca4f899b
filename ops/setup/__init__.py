"""What set-up consists of; standard library only, for it runs before anything is installed."""
