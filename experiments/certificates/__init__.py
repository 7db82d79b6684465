"""What certificates cost, and whether they are true."""
