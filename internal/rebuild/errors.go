package rebuild

import "tutti/internal/core"

// errDeleted is returned when the index that a job fills does not exist any more.
var errDeleted error = &core.Error{
	Code: core.CodeConflict, Message: "the index that was being filled was deleted", Hint: "start the rebuild again",
}

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
