# SPDX-License-Identifier: Apache-2.0
"""The event stream after a break: where it goes on, and that what cannot be told any more is said to be missing."""

import json
import os
import sqlite3

import pytest

from test_api import Stream


def restarted_without(bare, condition):
    """The same daemon, after its journal has dropped these events."""
    assert bare.stop() == 0
    with sqlite3.connect(os.path.join(bare.home, "journal.db")) as db:
        assert db.execute(f"DELETE FROM event WHERE {condition}").rowcount > 0
    bare.start()


def test_query_counts_before_the_header_of_the_library(place):
    place.ask("1G", mode="now")
    known = [e["id"] for e in place.events()]
    stream = Stream(place, f"/api/events?after={known[0]}", **{"Last-Event-ID": str(known[-1])})
    assert int(stream.next()["id"]) == known[1]
    stream.close()


@pytest.mark.parametrize("last", ["x", "-1", "1.5", "", "18446744073709551616"])
def test_last_event_id_that_is_none_is_refused(place, last):
    a = place.get("/api/events", headers={"Accept": "text/event-stream", "Last-Event-ID": last})
    assert a.status == 400 and a.problem == "bad-field" and a.json["field"] == "Last-Event-ID", a


def test_gap_is_told_where_events_are_no_longer_kept(bare):
    bare.start()
    for _ in range(3):
        bare.release(bare.ask("1G", mode="now").json["id"])
    ids = [e["id"] for e in bare.events()]
    restarted_without(bare, f"id < {ids[-2]}")
    stream = Stream(bare, "/api/events", **{"Last-Event-ID": str(ids[0])})
    gap = stream.next()
    assert gap["event"] == "gap" and "id" not in gap, gap
    told = json.loads(gap["data"])
    assert (told["kind"], told["after"], told["next"]) == ("gap", ids[0], ids[-2]) and told["text"]
    assert int(stream.next()["id"]) == ids[-2]
    stream.close()
    for last in (ids[-2] - 1, ids[-2], ids[-1], 0):  # nothing is missing, or nothing was asked for
        stream = Stream(bare, "/api/events", **{"Last-Event-ID": str(last)})
        if last >= ids[-1]:
            bare.ask("1G", mode="now")
        assert stream.next()["event"] != "gap"
        stream.close()


def test_ids_of_books_that_are_gone_are_told_as_such_and_the_new_ones_follow(place):
    place.ask("1G", mode="now")
    stream = Stream(place, "/api/events", **{"Last-Event-ID": "5000"})
    gap = stream.next()
    assert gap["event"] == "gap" and "begun anew" in json.loads(gap["data"])["text"]
    assert int(stream.next()["id"]) == place.events()[0]["id"]
    stream.close()
