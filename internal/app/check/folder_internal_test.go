package check

import "testing"

// TestFreeSpace: a data folder on a disk without room for the start is an error, one with little room a warning.
func TestFreeSpace(t *testing.T) {
	t.Parallel()
	for space, want := range map[int64]Finding{
		minSpace - 1: {"queue", StatusFail, "embedded; /data can be written, but only 64 MiB is free", "free disk space, or choose another dataDir"},
		minSpace:     {"queue", StatusWarn, "embedded; /data can be written, with only 64 MiB free", "free disk space before you index much"},
		lowSpace:     {"queue", StatusOK, "embedded; /data can be written, with 1.0 GiB free", ""},
	} {
		if got := freeSpace("queue", "/data can be written", space); got != want {
			t.Errorf("%d bytes: got %+v, want %+v", space, got, want)
		}
	}
}
