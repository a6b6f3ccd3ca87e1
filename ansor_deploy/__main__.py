"""`python -m ansor_deploy` is `ansor-deploy`."""

from .cli import main

if __name__ == "__main__":
    main()
