#!/bin/sh
exec bevatron "${0##*/}" "$@"
