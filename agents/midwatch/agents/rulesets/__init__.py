"""Rules and policies as a person writes them: read, admitted, bundled, put in force."""
