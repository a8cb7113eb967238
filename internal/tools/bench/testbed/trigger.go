package testbed

import (
	"time"

	"tutti/internal/tools/bench/direct"
	"tutti/internal/tools/testkit/dataset"
)

const (
	// DocumentPollInterval is the interval of polling the index for a changed document.
	DocumentPollInterval = time.Millisecond
	// UntimedTriggers precede the timed ones, so that connections are open.
	UntimedTriggers = 5
	// TriggerTimeout bounds the time until a change is indexed.
	TriggerTimeout = 30 * time.Second
)

// RecordPath returns the path of the trigger of a record.
func RecordPath(a dataset.Analysis) string {
	return "/index/repository/" + direct.RepositoryCode + "/organization/" + a.Study + "/id/" + a.ID
}
