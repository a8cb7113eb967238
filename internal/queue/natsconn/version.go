package natsconn

import (
	"fmt"

	"tutti/internal/core"
)

// lowestMajor and lowestMinor are the lowest version of an external server. Of 2.11.17 a request of a stream with a limit of
// one message for each subject, which the server brings back after a kill, is not always delivered; before 2.11 servers ignore the lifetime of
// a message (Nats-TTL), so that notes of deliveries would never expire.
const (
	lowestMajor = 2
	lowestMinor = 12
)

// tooOld returns CodeUnsupported for a server below the lowest version, nil for others and for one whose version cannot be read. Its message
// follows the server's name.
func tooOld(version string) error {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n < 2 || major > lowestMajor || major == lowestMajor && minor >= lowestMinor {
		return nil
	}
	lowest := fmt.Sprintf("%d.%d", lowestMajor, lowestMinor)
	return &core.Error{
		Code: core.CodeUnsupported, Message: "is too old: tutti needs nats-server " + lowest + " or later",
		Hint: "upgrade nats-server to " + lowest + " or later",
	}
}
