"""What is past its days: found, and removed where nobody needs it any more."""
