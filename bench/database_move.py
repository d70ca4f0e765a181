"""`manage.py migrate-to-postgresql` of a hub with 100,000 runs, beside the same rows by hand: every table as CSV
out of `sqlite3`, into `psql \\copy` in a database that has all tables and indexes. By hand nothing is checked or
verified."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psycopg

from bench.support.limits import Limits, median
from bench.support.peak_memory import peak_mib
from bench.support.postgresql import postgresql
from bench.support.stack import ROOT

MAX_RATIO, MAX_MIB = 2.0, 150
ROUNDS = 3
