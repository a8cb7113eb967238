package kv

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"tutti/internal/core"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/subjects"
)

// keyIDs is the prefix of the keys that store the ids of jobs of core.ScopeIDs, a page of ids with their outcomes each.
const keyIDs = "ids."

// Lists holds the lists of ids that jobs index, as long as the jobs.
type Lists struct{ jobs *Jobs }

// idsKey returns the key of a page of an organization's ids.
func idsKey(jobID, organization string, page int) string {
	return keyIDs + subjects.EncodeToken(jobID) + "." + subjects.EncodeToken(organization) + "." + strconv.Itoa(page)
}

// partKeys selects the organizations of a job, and its list of ids.
func partKeys(jobID string) []string {
	return []string{organizationKey(jobID, "") + "*", keyIDs + subjects.EncodeToken(jobID) + ".>"}
}

// StoreList stores the list of a job that does not exist yet, and an organization of the job for each part of it. What is stored
// is removed after a while if neither the job nor a Request of it follows.
func (l *Lists) StoreList(ctx context.Context, jobID string, list []core.IDList) error {
	for _, part := range list {
		page := 0
		for chunk := range slices.Chunk(part.IDs, core.IDsPerPage) {
			ids := make([]core.ListedID, len(chunk))
			for i, id := range chunk {
				ids[i].ID = id
			}
			data, err := json.Marshal(ids)
			if err != nil {
				return core.WrapError(core.CodeInternal, "encoding ids", err)
			}
			if err := l.jobs.conn.Write(ctx, func(ctx context.Context) error {
				_, err := l.jobs.kv.Put(ctx, idsKey(jobID, part.Organization, page), data)
				return err
			}); err != nil {
				return natsconn.WrapError("storing the ids of a job", err)
			}
			page++
		}
		last := page - 1
		run := core.OrganizationRun{Organization: part.Organization, State: core.JobQueued, DoneThrough: -1, LastPage: &last}
		run.Expect(int64(len(part.IDs)))
		if _, err := l.jobs.CreateOrganization(ctx, jobID, run); err != nil {
			return err
		}
	}
	return nil
}

// DropList removes what StoreList has stored.
func (l *Lists) DropList(ctx context.Context, jobID string) error {
	for _, keys := range partKeys(jobID) {
		if err := l.jobs.purge(ctx, prefix+keys); err != nil {
			return natsconn.WrapError("removing the ids of a job", err)
		}
	}
	return nil
}

// IDPage returns a page of an organization's ids, in the order of the list; CodeNotFound after the last one.
func (l *Lists) IDPage(ctx context.Context, jobID, organization string, page int) ([]core.ListedID, error) {
	var ids []core.ListedID
	_, _, err := l.jobs.get(ctx, idsKey(jobID, organization, page), &ids)
	if natsconn.IsNotFound(err) {
		return nil, noSuchPage()
	}
	return ids, natsconn.WrapError("reading the ids of a job", err)
}

// UpdateIDPage is Jobs.Update for a page of ids.
func (l *Lists) UpdateIDPage(
	ctx context.Context, jobID, organization string, page int, change func([]core.ListedID) error,
) ([]core.ListedID, error) {
	ids, err := update(ctx, l.jobs, idsKey(jobID, organization, page), func(ids *[]core.ListedID) error { return change(*ids) })
	if isMissing(err) {
		return nil, noSuchPage()
	}
	return ids, err
}

func noSuchPage() error { return core.NewError(core.CodeNotFound, "no such page of ids of this job") }
