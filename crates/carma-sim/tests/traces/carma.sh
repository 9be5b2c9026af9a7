#!/bin/bash
# Two tasks at once, then two more.
set -e
cd "$(dirname "$0")"

./submit.sh tasks/Xception2.rad
python submit.py --task mobilenet3 &
sleep 90 # a pause
echo "half time"
carma submit --priority=2 --file="tasks/gpt2_large_2.rad"
sleep 2m; ./submit.sh BERT_base
wait
