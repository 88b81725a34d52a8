"""A service as a child process: started, supervised, probed, its failure explained."""
