#!/bin/sh
# hours.sh MINUTES: the same in hours and minutes, as H:MM.
printf '%d:%02d\n' $(($1 / 50)) $(($1 % 60))
