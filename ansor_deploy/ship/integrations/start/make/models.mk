# Models as libraries, for a Makefile to include; `ansor-deploy init` wrote it, and changes it no more.
# `make tune` looks for faster schedules and writes them to records.lock, which belongs into version
# control, as this file does.
include $(shell ansor-deploy hooks make)/ansor_deploy.mk

@MODELS@
