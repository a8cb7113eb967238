package counts

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"tutti/consumers/state"
	"tutti/internal/core"
	"tutti/internal/core/jobsum"
)

// kindCounts are the JSON kinds of the records of a whole run, as they are kept for the next rebuild.
type kindCounts struct {
	jobID string
	// version is that with which the run wrote: a document with a newer one has changed since.
	version core.Version
	kinds   core.Kinds
	// ended is the newest version when the run ended and had removed all other documents than those that it had counted, zero if it has not.
	ended core.Version
}

func (c kindCounts) String() string {
	version := strconv.FormatInt(int64(c.version), 10)
	if c.ended > 0 {
		version += "," + strconv.FormatInt(int64(c.ended), 10)
	}
	return c.jobID + " " + version + " " + base64.StdEncoding.EncodeToString(c.kinds)
}

// parseKindCounts reverses String. What it cannot read is no counts.
func parseKindCounts(value string) kindCounts {
	jobID, rest, _ := strings.Cut(value, " ")
	version, encoded, _ := strings.Cut(rest, " ")
	version, end, has := strings.Cut(version, ",")
	at, err := strconv.ParseInt(version, 10, 64)
	kinds, damaged := base64.StdEncoding.DecodeString(encoded)
	ended := int64(0)
	if has && err == nil {
		ended, err = strconv.ParseInt(end, 10, 64)
	}
	if err != nil || damaged != nil {
		return kindCounts{}
	}
	return kindCounts{jobID, core.Version(at), kinds, core.Version(ended)}
}

// Keep keeps the kinds of the records of a repository's job for the next rebuild, if it has read all, and removes those of its
// organizations. If that fails, the next rebuild reads the records once more.
func (k *Kinds) Keep(ctx context.Context, job core.Job, runs []core.OrganizationRun) {
	if !job.Kinds {
		return
	}
	if err := k.storeKinds(ctx, job, runs); err != nil {
		k.cfg.Logger.WarnContext(ctx, "the JSON kinds of the records are not kept; a rebuild will read the records once more", "job_id", job.ID, "err", err)
	}
}

func (k *Kinds) storeKinds(ctx context.Context, job core.Job, runs []core.OrganizationRun) error {
	value, revision, err := k.cfg.Cells.Cell(ctx, k.cfg.Cell)
	if err != nil {
		return err
	}
	if parseKindCounts(value).jobID != job.ID && state.AllRead(runs) {
		kinds, err := k.sumKinds(ctx, job, runs)
		if err != nil {
			return err
		}
		k.cfg.Drift.NoteFields(ctx, job, changedFields(parseKindCounts(value).kinds, kinds))
		counts := kindCounts{jobID: job.ID, version: job.StartVersion, kinds: kinds}
		if err := k.cfg.Cells.SetCell(ctx, k.cfg.Cell, counts.String(), revision); err != nil {
			return err
		}
		if !kinds.Whole() {
			k.cfg.Logger.WarnContext(ctx, "the records have too many different fields: their JSON kinds are not kept, and a rebuild will read them once more",
				"job_id", job.ID, "max_bytes", core.MaxKindsBytes)
		}
	}
	for _, run := range runs {
		if len(run.Kinds) == 0 && len(run.AheadKinds) == 0 {
			continue
		}
		if _, err := k.cfg.Organizations.UpdateOrganization(ctx, job.ID, run.Organization, func(run *core.OrganizationRun) error {
			run.Kinds, run.AheadKinds = nil, nil
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// sumKinds returns the kinds of all records of a job. They are overflown if not every record was counted: a process of an earlier release may
// have read some.
func (k *Kinds) sumKinds(ctx context.Context, job core.Job, runs []core.OrganizationRun) (core.Kinds, error) {
	var all core.Kinds
	err := k.cfg.Groups.EachSum(ctx, job.ID, 0, func(c jobsum.Change) error {
		all = all.Add(c.Kinds, core.MaxKindsBytes)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if fetched := state.Sum(runs).Fetched; all.Whole() && all.Records() != fetched {
		k.cfg.Logger.InfoContext(ctx, "the JSON kinds of some records were not counted", "job_id", job.ID, "records", fetched, "counted", all.Records())
		return core.OverflownKinds(), nil
	}
	return all, nil
}

// NoteEnded sets kindCounts.ended of what a job has kept. If that fails, the next rebuild reads the records once more.
func (k *Kinds) NoteEnded(ctx context.Context, job core.Job) {
	if !job.Kinds {
		return
	}
	value, revision, err := k.cfg.Cells.Cell(ctx, k.cfg.Cell)
	counts := parseKindCounts(value)
	if err == nil && (counts.jobID != job.ID || counts.ended > 0) {
		return
	}
	if err == nil {
		if counts.ended, err = k.cfg.Requests.Newest(ctx); err == nil {
			err = k.cfg.Cells.SetCell(ctx, k.cfg.Cell, counts.String(), revision)
		}
	}
	if err != nil && core.CodeOf(err) != core.CodeConflict { // another process has set it
		k.cfg.Logger.WarnContext(ctx, "the end of the count of JSON kinds is not kept; a rebuild will read the records once more", "job_id", job.ID, "err", err)
	}
}

// keptKinds returns the kinds of all records as they are now: those that the last run of the repository counted, with those of the records that
// are new or have changed since, as its server returns them. The kinds that these had before are still in it; why is set if that may change a
// decision, or if it is not known what has changed.
func (k *Kinds) keptKinds(ctx context.Context, job core.Job, uncertain Uncertain) (kinds core.Kinds, why string, err error) {
	value, _, err := k.cfg.Cells.Cell(ctx, k.cfg.Cell)
	if err != nil {
		return nil, "", err
	}
	counts := parseKindCounts(value)
	switch {
	case counts.jobID == "":
		return nil, "no run has counted the JSON kinds of its records", nil
	case !counts.kinds.Whole():
		return nil, "the last run could not count the JSON kinds of all records", nil
	case counts.ended == 0:
		return nil, "the last run that counted the JSON kinds left documents that it had not counted", nil
	}
	c := changes{of: k, counts: counts}
	if why, err = c.find(ctx); err == nil && why == "" {
		kinds, why, err = c.kinds(ctx, job)
	}
	if err == nil && why == "" {
		if path := uncertain(kinds, c.gone); path != "" {
			why = fmt.Sprintf("%d are no longer as they were counted, which may decide the type of %q", c.gone, path)
		}
	}
	if err != nil || why != "" {
		return nil, "records have changed since the last run: " + why, err
	}
	if c.gone > 0 || len(c.records) > 0 {
		k.cfg.Logger.InfoContext(ctx, "the rebuild decides the types of fields from what an earlier run counted and from the records that have changed since",
			"job_id", job.ID, "counted_by", counts.jobID, "changed", len(c.records), "gone", c.gone)
	}
	return kinds, "", nil
}
