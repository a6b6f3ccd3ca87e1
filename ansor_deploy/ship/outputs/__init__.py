"""What a build leaves behind: a library, and the files beside it that describe it."""
