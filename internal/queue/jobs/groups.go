package jobs

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"tutti/internal/base/order"
	"tutti/internal/core"
	"tutti/internal/core/jobsum"
	"tutti/internal/queue/cells"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/natsread"
	"tutti/internal/queue/subjects"
)

// Groups holds the organizations of jobs that have many of them: one key for each group. An organization with more pages than one is
// stored by itself as well, and then only that counts.
type Groups struct{ jobs *Jobs }

// groupToken is the token of a key before the number of a group. It is not base64url, so that no organization has it.
const groupToken = "="

func groupKey(jobID string, number int) string {
	return organizationKey(jobID, "") + groupToken + "." + strconv.Itoa(number)
}

// groupOf returns the number of the group of a subject, -1 for the subject of one organization.
func groupOf(subject string) int {
	_, rest, found := strings.Cut(subject, "."+groupToken+".")
	number, err := strconv.Atoi(rest)
	if !found || err != nil {
		return -1
	}
	return number
}

// storedGroup is the value of a group. Sum and Kinds, those of the organizations that have ended, come first, so that they can be read
// without the rest.
type storedGroup struct {
	Sum   groupSum               `json:"sum"`
	Kinds core.Kinds             `json:"kinds,omitempty"`
	Runs  []core.OrganizationRun `json:"runs"`
}

// groupSum sums a group. First and Last are its first and last organization by name.
type groupSum struct {
	jobsum.Sum
	First string `json:"first"`
	Last  string `json:"last"`
}

func (g *storedGroup) sum() {
	g.Sum = groupSum{}
	for i := range g.Runs {
		run := &g.Runs[i]
		if i == 0 || run.Organization < g.Sum.First {
			g.Sum.First = run.Organization
		}
		g.Sum.Last = max(g.Sum.Last, run.Organization)
		g.Sum.Add(run)
		g.Kinds = run.MoveKinds(g.Kinds)
	}
}

// CreateGroup stores a new group of organizations of a job; false when its number exists already.
func (g *Groups) CreateGroup(ctx context.Context, jobID string, number int, runs []core.OrganizationRun) (bool, error) {
	if err := core.ValidKey("job id", jobID); err != nil {
		return false, err
	}
	group := storedGroup{Runs: runs}
	group.sum()
	created, err := g.jobs.create(ctx, groupKey(jobID, number), group)
	if err == nil {
		err = g.jobs.organizationChanged(ctx, jobID)
	}
	return created, natsconn.WrapError("creating a group of organizations of the job", err)
}

// Group returns the organizations of a group; CodeNotFound when there is none with this number.
func (g *Groups) Group(ctx context.Context, jobID string, number int) ([]core.OrganizationRun, error) {
	var group storedGroup
	_, _, err := g.jobs.get(ctx, groupKey(jobID, number), &group)
	if natsconn.IsNotFound(err) {
		return nil, noSuchGroup()
	}
	return group.Runs, natsconn.WrapError("reading a group of organizations of the job", err)
}

func noSuchGroup() error {
	return core.NewError(core.CodeNotFound, "no such group of organizations of this job")
}

// UpdateGroup is Jobs.Update for a group.
func (g *Groups) UpdateGroup(
	ctx context.Context, jobID string, number int, change func([]core.OrganizationRun) error,
) ([]core.OrganizationRun, error) {
	group, err := update(ctx, g.jobs, groupKey(jobID, number), func(group *storedGroup) error {
		if err := change(group.Runs); err != nil {
			return err
		}
		group.sum()
		return nil
	})
	if isMissing(err) {
		return nil, noSuchGroup()
	}
	if err == nil {
		err = g.jobs.organizationChanged(ctx, jobID)
	}
	return group.Runs, err
}

// UpdateOrganizations changes every organization of a job, by one write for each group, and returns them as they are then, sorted by
// name. It may call change several times.
func (g *Groups) UpdateOrganizations(
	ctx context.Context, jobID string, change func(*core.OrganizationRun) error,
) ([]core.OrganizationRun, error) {
	stored, err := g.jobs.readOrganizations(ctx, jobID)
	if err != nil {
		return nil, err
	}
	for i := range stored.groups {
		_, err := g.UpdateGroup(ctx, jobID, stored.groups[i].number, func(runs []core.OrganizationRun) error {
			for i := range runs {
				if _, alone := stored.alone[runs[i].Organization]; alone {
					runs[i].Moved = true
				} else if err := change(&runs[i]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for organization := range stored.alone {
		if _, err := g.jobs.UpdateOrganization(ctx, jobID, organization, change); err != nil {
			return nil, err
		}
	}
	return g.jobs.Organizations(ctx, jobID)
}

// EachSum calls each with the current sum of every group of a job that changed after a revision, and of every organization that is
// stored by itself, in the order of their last changes, until it returns an error.
func (g *Groups) EachSum(ctx context.Context, jobID string, after uint64, each func(jobsum.Change) error) error {
	filter := cells.Prefix + organizationKey(jobID, "")
	err := natsread.After(ctx, g.jobs.bucket.Conn, g.jobs.bucket.Stream, filter+">", after, false, func(m natsread.Message) error {
		change := jobsum.Change{Revision: m.Sequence, Group: groupOf(m.Subject)}
		switch {
		case m.Header.Get("KV-Operation") != "":
		case change.Group >= 0:
			sum, err := sumOf(m.Data)
			if err != nil {
				return err
			}
			change.Sum, change.Kinds = sum.Sum, kindsOf(m.Data)
		default:
			var run core.OrganizationRun
			if err := json.Unmarshal(m.Data, &run); err != nil {
				return core.WrapError(core.CodeInternal, "decoding an organization of a job", err)
			}
			change.Sum.Add(&run)
			change.Kinds = run.Kinds
		}
		if change.Group < 0 {
			var err error
			if change.Organization, err = subjects.DecodeToken(strings.TrimPrefix(m.Subject, filter)); err != nil {
				return err
			}
		}
		return each(change)
	})
	return natsconn.WrapError("reading the sums of the organizations of the job", err)
}

// Sum sums all organizations of a job.
func (g *Groups) Sum(ctx context.Context, jobID string) (jobsum.Sum, error) {
	stored, err := g.jobs.readOrganizations(ctx, jobID)
	return stored.sum(), err
}

// sumOf decodes the sum of a group.
func sumOf(data []byte) (sum groupSum, err error) {
	if err := json.Unmarshal([]byte(gjson.GetBytes(data, "sum").Raw), &sum); err != nil {
		return sum, core.WrapError(core.CodeInternal, "decoding a group of organizations of a job", err)
	}
	return sum, nil
}

// kindsOf decodes the kinds of a group.
func kindsOf(data []byte) core.Kinds {
	kinds, err := base64.StdEncoding.DecodeString(gjson.GetBytes(data, "kinds").String())
	if err != nil {
		return core.OverflownKinds()
	}
	return kinds
}

// organizations are the stored organizations of a job.
type organizations struct {
	// alone holds those that are stored by themselves.
	alone map[string]core.OrganizationRun
	// groups are the groups by their first organization.
	groups []encodedGroup
	// last is the revision of the last change.
	last uint64
}

// encodedGroup is a group of which only the sum is decoded.
type encodedGroup struct {
	number int
	sum    groupSum
	data   []byte
}

// readOrganizations reads all organizations of a job.
func (j *Jobs) readOrganizations(ctx context.Context, jobID string) (organizations, error) {
	stored := organizations{alone: make(map[string]core.OrganizationRun)}
	groups := make(map[int]encodedGroup)
	err := natsread.All(ctx, j.bucket.Conn, j.bucket.Stream, cells.Prefix+organizationKey(jobID, "")+">", func(m natsread.Message) error {
		stored.last = m.Sequence
		switch number := groupOf(m.Subject); {
		case m.Header.Get("KV-Operation") != "":
			return nil // a job is removed as a whole
		case number >= 0:
			sum, err := sumOf(m.Data)
			groups[number] = encodedGroup{number: number, sum: sum, data: m.Data}
			return err
		}
		var run core.OrganizationRun
		if err := json.Unmarshal(m.Data, &run); err != nil {
			return core.WrapError(core.CodeInternal, "decoding an organization of a job", err)
		}
		stored.alone[run.Organization] = run
		return nil
	})
	if err != nil {
		return stored, natsconn.WrapError("reading the organizations of the job", err)
	}
	for _, group := range groups {
		stored.groups = append(stored.groups, group)
	}
	order.Sort(stored.groups, func(a, b encodedGroup) int { return strings.Compare(a.sum.First, b.sum.First) })
	return stored, nil
}

// runs decodes the organizations of a group that are not stored by themselves.
func (o *organizations) runs(g *encodedGroup) ([]core.OrganizationRun, error) {
	var group storedGroup
	if err := json.Unmarshal(g.data, &group); err != nil {
		return nil, core.WrapError(core.CodeInternal, "decoding a group of organizations of a job", err)
	}
	return slices.DeleteFunc(group.Runs, func(run core.OrganizationRun) bool {
		_, alone := o.alone[run.Organization]
		return alone || run.Moved
	}), nil
}

// all returns all organizations.
func (o *organizations) all() ([]core.OrganizationRun, error) {
	all := make([]core.OrganizationRun, 0, len(o.alone))
	for _, run := range o.alone {
		all = append(all, run)
	}
	for i := range o.groups {
		runs, err := o.runs(&o.groups[i])
		if err != nil {
			return nil, err
		}
		all = append(all, runs...)
	}
	return all, nil
}

// sum sums all organizations.
func (o *organizations) sum() jobsum.Sum {
	var sum jobsum.Sum
	for i := range o.groups {
		sum.AddSum(o.groups[i].sum.Sum)
	}
	for _, run := range o.alone {
		sum.Add(&run)
	}
	return sum
}

// errFound ends a search.
var errFound = errors.New("found")

// findInGroup returns the number of an organization's group and the organization, CodeNotFound if no group has it.
func (j *Jobs) findInGroup(ctx context.Context, jobID, organization string) (number int, found core.OrganizationRun, err error) {
	err = natsread.All(ctx, j.bucket.Conn, j.bucket.Stream, cells.Prefix+organizationKey(jobID, "")+groupToken+".*", func(m natsread.Message) error {
		sum, err := sumOf(m.Data)
		if err != nil || organization < sum.First || organization > sum.Last {
			return err
		}
		var group storedGroup
		if err := json.Unmarshal(m.Data, &group); err != nil {
			return core.WrapError(core.CodeInternal, "decoding a group of organizations of a job", err)
		}
		for _, run := range group.Runs {
			if run.Organization == organization && !run.Moved {
				number, found = groupOf(m.Subject), run
				return errFound
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, errFound):
		return number, found, nil
	case err == nil:
		return 0, found, organizationNotFound()
	default:
		return 0, found, natsconn.WrapError("reading an organization of the job", err)
	}
}

// updateInGroup is UpdateOrganization for one of a group.
func (j *Jobs) updateInGroup(
	ctx context.Context, jobID, organization string, change func(*core.OrganizationRun) error,
) (core.OrganizationRun, error) {
	number, changed, err := j.findInGroup(ctx, jobID, organization)
	if err != nil {
		return core.OrganizationRun{}, err
	}
	_, err = (&Groups{jobs: j}).UpdateGroup(ctx, jobID, number, func(runs []core.OrganizationRun) error {
		for i := range runs {
			if runs[i].Organization == organization {
				err := change(&runs[i])
				changed = runs[i]
				return err
			}
		}
		return organizationNotFound()
	})
	return changed, err
}
