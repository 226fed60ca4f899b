"""Clicks over TCP: taken, stored so that they survive, acknowledged."""
