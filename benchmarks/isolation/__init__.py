"""What two keys with disjoint scopes see of each other when they try everything."""
