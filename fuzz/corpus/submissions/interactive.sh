#!/bin/bash
#CARMA --interactive --idle 2h --image pytorch:2 --engine podman
#CARMA -J 'it''s' --workdir runs --output logs/%x-%j.out
