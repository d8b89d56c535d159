"""What stands where in the texts of each language: a module a language, by the name that the registry knows."""
