package sweep

import (
	"fmt"
	"slices"
	"strings"

	"tutti/consumers/outcome"
	"tutti/internal/core"
)

// The guard against a mass removal (CONTRACT section 1): a sweep that would request or remove more than GuardShare of a
// scope's documents and more than guardMin of them, or all of them, requests and removes none.
const (
	GuardShare = 0.20
	guardMin   = 10
)

// guardIDs is how many ids the error of the guard names, each with at most guardIDBytes.
const (
	guardIDs     = 10
	guardIDBytes = 100
)

func guarded(documents int, total int64) bool {
	if documents == 0 {
		return false
	}
	return int64(documents) >= total || (documents > guardMin && float64(documents) > GuardShare*float64(total))
}

// unseenDocuments are documents that a run may not have seen, or whose records its lists showed as not to be indexed: their versions are
// below first, the run's own, or lie in the future. The guard counts the missing and the invalid ones: neither records that were
// requested alone before, because they were too old to be written with their page, nor versions from the future, which the run's pages
// could not replace. Once the guard applies, the documents are only counted.
type unseenDocuments struct {
	ids            []string // to be requested
	invalidIDs     []string // to be removed
	missing        int
	invalid        int
	lowest         []string // the first ids of those that the guard counts
	first          core.Version
	requestedAlone map[string]string
	onlyCounted    bool
}

// add adds a document. invalid is true if a list showed its record as not to be indexed.
func (u *unseenDocuments) add(id string, v core.Version, invalid bool) {
	_, alone := u.requestedAlone[id]
	counts := !alone && v < u.first
	to := &u.ids
	switch {
	case counts && invalid:
		u.invalid++
		to = &u.invalidIDs
	case counts:
		u.missing++
	}
	if !u.onlyCounted {
		*to = append(*to, id)
	}
	if counts && (len(u.lowest) < guardIDs || id < u.lowest[guardIDs-1]) {
		at, _ := slices.BinarySearch(u.lowest, id)
		u.lowest = slices.Insert(u.lowest, at, id)
		u.lowest = u.lowest[:min(len(u.lowest), guardIDs)]
	}
}

// guard applies the guard for a scope of total documents, and reports whether it forbids to remove the documents. Then it releases their
// ids.
func (u *unseenDocuments) guard(job core.Job, total int64) bool {
	if job.Force || !guarded(u.counted(), total) {
		return false
	}
	u.onlyCounted, u.ids, u.invalidIDs = true, nil, nil
	return true
}

// counted is the number of documents that the guard counts.
func (u *unseenDocuments) counted() int { return u.missing + u.invalid }

func (u *unseenDocuments) empty() bool { return len(u.ids)+len(u.invalidIDs) == 0 }

// guardError returns the error of a run that the guard has kept from removing the documents, of total.
func (u *unseenDocuments) guardError(total int64) *core.JobError {
	return &core.JobError{Code: u.guardCode(), Message: fmt.Sprintf("%s; nothing was removed. Run again with force to remove them. %s", u.reasons(total), u.examples())}
}

// rebuildGuardError is guardError of a rebuild: the documents are those that the new index lacks.
func (u *unseenDocuments) rebuildGuardError(total int64) *core.JobError {
	why := ""
	if u.invalid > 0 {
		why = fmt.Sprintf("; the records of %d are shown as not valid by the repository's list", u.invalid)
	}
	return &core.JobError{Code: u.guardCode(), Message: fmt.Sprintf(
		"the new index lacks %d of %d documents%s. Run again with force to replace the index nevertheless. %s", u.counted(), total, why, u.examples())}
}

func (u *unseenDocuments) guardCode() string {
	if u.invalid > u.missing {
		return core.JobErrorManyInvalid
	}
	return core.JobErrorPruneGuard
}

// reasons returns how many documents of total would be removed, and why.
func (u *unseenDocuments) reasons(total int64) string {
	switch {
	case u.invalid == 0:
		return fmt.Sprintf("%d of %d documents were not seen by the run", u.missing, total)
	case u.missing == 0:
		return fmt.Sprintf("the records of %d of %d documents are shown as not valid by the repository's list", u.invalid, total)
	default:
		return fmt.Sprintf("%d of %d documents would be removed: the records of %d are shown as not valid by the repository's list, and %d were not seen by the run",
			u.counted(), total, u.invalid, u.missing)
	}
}

func (u *unseenDocuments) examples() string {
	ids := make([]string, len(u.lowest))
	for i, id := range u.lowest {
		ids[i] = outcome.Truncate(id, guardIDBytes)
	}
	which := "Their ids: "
	if u.counted() > len(ids) {
		which = "The first ids: "
	}
	return which + strings.Join(ids, ", ")
}
