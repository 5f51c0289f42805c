"""How the service holds up: many searchers and a writer at once, and somebody who only asks whether it lives."""
