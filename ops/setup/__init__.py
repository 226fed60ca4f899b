"""What set-up consists of; standard library only, because it runs before anything is installed."""
