"""What the containers of docker-compose.yml run."""
