package rebuild

import (
	"errors"

	"tutti/internal/core"
)

// errLost is matched by the errors of a rebuild that cannot go on with the index that its job fills.
var errLost = errors.New("the rebuild has lost its index")

// lost returns the error of such a rebuild.
func lost(message, hint string) error {
	return &core.Error{Code: core.CodeConflict, Message: message, Hint: hint, Err: errLost}
}

// errDeleted is returned when the index that a job fills does not exist any more.
var errDeleted = lost("the index that was being filled was deleted", "start the rebuild again")

// errUnaliased is returned when the index exists, but not behind its alias.
func errUnaliased(physical, next string) error {
	return lost("the alias "+next+" was removed from the index "+physical+" that was being filled, or stands for another one too",
		"start the rebuild again, and delete "+physical+" if nothing else needs it")
}

func errBlocked(reason string) error {
	return lost("the index that was being filled takes no writes: "+reason, "start the rebuild again, which deletes it and fills another one")
}

// errMissed is that of an index that took no writes for a time.
var errMissed = lost("the index that was being filled took no writes for a time, and lacks changes", "start the rebuild again")

// errRolledBack is returned once for a rollback that did not end, and needs nothing more.
var errRolledBack error = &core.Error{
	Code: core.CodeConflict, Message: "the index was rolled back already, and its run is queued",
	Hint: "see the repository's jobs; request again to return to the other index",
}

func errNoPrevious() error {
	return core.NewError(core.CodeNotFound, "no index from before a rebuild is kept")
}

func errBusy(message string) error {
	return &core.Error{Code: core.CodeConflict, Message: message, Hint: "see the repository's jobs, then try again"}
}
