# Tuned models in a Makefile, for GNU make 4.3 and newer; docs/builds.md has an example.
#
#   include $(shell ansor-deploy hooks make)/ansor_deploy.mk
#   $(eval $(call ansor_deploy_model,NAME,MODEL,TARGET,LOCK,OPTIONS))
#
# A call a model; OPTIONS go to `build` and `tune` alike, as --rules FILE does. It defines
#
#   $(NAME_LIBRARY), $(NAME_HEADER)   the library and its C header, built from the lock's records
#   tune-NAME, tune                   measure, and write the lock: of this model, of every model
#
# A build measures nothing: where the lock lacks a record it ends in an error that names it. For a
# program that runs models:
#
#   $(ANSOR_DEPLOY_CPPFLAGS)          to compile what includes a header
#   $(ANSOR_DEPLOY_OBJECT)            to link: the C API, compiled by $(CC)
#   $(ANSOR_DEPLOY_LDLIBS)            to link: TVM's runtime
#
# Tuning runs on the devices that were added for TARGET, or on those that ANSOR_DEPLOY_DEVICES names.
# A space in a path of the call is written as `\ `, a comma as $(ansor_deploy_comma). These may be set
# before the file is included:

ANSOR_DEPLOY ?= ansor-deploy
ANSOR_DEPLOY_OUT ?= build/models
ANSOR_DEPLOY_TUNE_FLAGS ?= --time 10m
ANSOR_DEPLOY_DEVICES ?=

# Where the packages tvm and tvm_ffi lie: beside ansor_deploy, or where the command says, which is
# asked once and only if somebody wants to know.
ansor_deploy_c := $(abspath $(dir $(lastword $(MAKEFILE_LIST)))../c)
ansor_deploy_beside := $(abspath $(ansor_deploy_c)/../../..)
ifneq ($(wildcard $(ansor_deploy_beside)/tvm_ffi/lib/libtvm_ffi.so),)
ANSOR_DEPLOY_SITE ?= $(ansor_deploy_beside)
endif
ANSOR_DEPLOY_SITE ?= $(eval ANSOR_DEPLOY_SITE := $$(shell $$(ANSOR_DEPLOY) hooks runtime))$\
                     $(ANSOR_DEPLOY_SITE)

ANSOR_DEPLOY_CPPFLAGS = -I$(ANSOR_DEPLOY_OUT) -I$(ansor_deploy_c)
ANSOR_DEPLOY_OBJECT = $(ANSOR_DEPLOY_OUT)/ansor_deploy.o
ANSOR_DEPLOY_LDLIBS = $(foreach package,tvm tvm_ffi,-L$(ANSOR_DEPLOY_SITE)/$(package)/lib $\
    -Wl,-rpath,$(ANSOR_DEPLOY_SITE)/$(package)/lib) -ltvm_runtime -ltvm_ffi

# Commas divide the words of a call: those of options are put in by its last expansion.
ansor_deploy_comma := ,
ansor_deploy_words = $(subst $(ansor_deploy_comma),$$(ansor_deploy_comma),$(1))

# A line with + takes part in make's job server, but is run under -n, -q and -t, too: not by this.
ansor_deploy_flags = $(filter-out --%,$(firstword -$(MAKEFLAGS)))
ansor_deploy_is = $(findstring $(1),$(ansor_deploy_flags))
ansor_deploy_run = $(if $(call ansor_deploy_is,n),$(info $(1)),$\
    $(if $(call ansor_deploy_is,q)$(call ansor_deploy_is,t),,$(1)))

# Whatever is the default goal without this file stays it.
ansor_deploy_goal := $(.DEFAULT_GOAL)

# Of the model $(1): what a build renews; and a target that is always due, where a file is missing or a
# build was killed, which may have renewed one of them alone.
ansor_deploy_outputs = $(addprefix $(ANSOR_DEPLOY_OUT)/$(1).,so json intoto.json)
ansor_deploy_missing = $(filter-out 5,$(words $(wildcard $(ansor_deploy_outputs) $\
    $(addprefix $(ANSOR_DEPLOY_OUT)/$(1).,h d))))
ansor_deploy_due = $(if $(ansor_deploy_missing)$(wildcard $(ANSOR_DEPLOY_OUT)/$(1).unfinished),$\
    ansor_deploy_always)

# The library's time is that of its last build, if only of one that had nothing to do: make compares
# times. The header's is that of its last change, so that nothing is compiled again without need: its
# recipe is empty, which makes make look at its time; the + has it look under -n and -q as well.
define ansor_deploy_model
ansor_deploy_names += $(1)
$(1)_LIBRARY := $(ANSOR_DEPLOY_OUT)/$(1).so
$(1)_HEADER := $(ANSOR_DEPLOY_OUT)/$(1).h
$(ansor_deploy_outputs): private export ANSOR_DEPLOY_TUNE := make tune-$(1)
$(ansor_deploy_outputs) &: $(2) $(ansor_deploy_due) | $(ANSOR_DEPLOY_OUT)
	@touch $(ANSOR_DEPLOY_OUT)/$(1).unfinished
	+$$(call ansor_deploy_run,$(ANSOR_DEPLOY) build $(2) -o $(ANSOR_DEPLOY_OUT)/$(1).so $\
	    --target $(3) --lock $(4) --frozen --header --touch $\
	    --depfile $(ANSOR_DEPLOY_OUT)/$(1).d $(call ansor_deploy_words,$(5)))
	@rm $(ANSOR_DEPLOY_OUT)/$(1).unfinished

$(ANSOR_DEPLOY_OUT)/$(1).h: $(ANSOR_DEPLOY_OUT)/$(1).so ; +

.PHONY: tune-$(1)
tune-$(1):
	+$$(call ansor_deploy_run,$(ANSOR_DEPLOY) tune $(2) --target $(3) --lock $(4) $\
	    $(call ansor_deploy_words,$(5)) $(ANSOR_DEPLOY_TUNE_FLAGS) $\
	    $(addprefix --device ,$(ANSOR_DEPLOY_DEVICES)))

-include $(ANSOR_DEPLOY_OUT)/$(1).d
.DEFAULT_GOAL := $(.DEFAULT_GOAL)
endef

# One after the other, whatever -j says: two tunings at a time would disturb each other.
.PHONY: tune ansor_deploy_always
tune:
	+$(foreach name,$(ansor_deploy_names),$(MAKE) --no-print-directory tune-$(name) &&) true

$(ANSOR_DEPLOY_OUT):
	mkdir -p $@

$(ANSOR_DEPLOY_OUT)/ansor_deploy.o: $(wildcard $(ansor_deploy_c)/*.c $(ansor_deploy_c)/*.h) \
    | $(ANSOR_DEPLOY_OUT)
	$(CC) $(CPPFLAGS) $(CFLAGS) -I$(ANSOR_DEPLOY_SITE)/tvm_ffi/include -c $< -o $@

.DEFAULT_GOAL := $(ansor_deploy_goal)
