"""What is true of an hour: its account, which hours it touches, whether it is final, held or published."""
