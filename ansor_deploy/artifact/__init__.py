"""What a build leaves behind: a library, and the files beside it that tell of it."""
