#!/bin/sh
#CARMA --array 0-99999:7 --at-most 3 --begin "now + 2h"
#CARMA --retries 2 --oom-retries 1 --checkpoint
true
