package demo

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tidwall/sjson"
)

// webhook changes a record of the tabular repository and tells it as the repository's webhook would.
func (d *demo) webhook(ctx context.Context) error {
	organization := d.lyric.Organizations()[0]
	record := d.lyric.Records(organization)[0]
	body, err := sjson.SetBytes(record.Body, "data.comments", "Updated at "+time.Now().UTC().Format(time.TimeOnly))
	if err == nil {
		err = d.lyric.Put(organization, body)
	}
	if err != nil {
		return fmt.Errorf("changing a record: %w", err)
	}
	event, err := json.Marshal(map[string]any{
		"action": "UPDATE", "categoryId": 1, "entityName": "donor", "isValid": true, "organization": organization,
		"systemId": record.SystemID,
	})
	if err != nil {
		return fmt.Errorf("writing an event: %w", err)
	}
	d.say("\n4. A record of %s changes at the tabular repository, whose webhook tells it: POST /notifications/%s", organization, tabularCode)
	took, err := d.outcome(ctx, tabularIndex, "indexed", func() error {
		return d.client.send(ctx, "/notifications/"+tabularCode, event, "sha256="+signature(event))
	})
	if err != nil {
		return err
	}
	d.say("   %s changed     → indexed after %s", record.SystemID, took)
	return nil
}

func signature(body []byte) string {
	mac := hmac.New(sha256.New, []byte(webhookSecret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// rejected announces an analysis that the index refuses, and gives the id of the dead letter that keeps it. The repository
// mends the analysis then, so that a retry succeeds.
func (d *demo) rejected(ctx context.Context, study string) (letter string, err error) {
	whole := d.song.Analyses(study)[changedAnalyses+1]
	broken, err := sjson.SetBytes(whole.Body, "analysisType", "not an object")
	if err != nil {
		return "", fmt.Errorf("breaking an analysis: %w", err)
	}
	if broken, err = sjson.SetBytes(broken, "updatedAt", time.Now().UTC().Format("2006-01-02T15:04:05.000000")); err != nil {
		return "", fmt.Errorf("breaking an analysis: %w", err)
	}
	if err := d.song.Put(study, broken); err != nil {
		return "", err
	}
	event, err := json.Marshal(map[string]string{
		"analysisId": whole.ID, "studyId": study, "state": "PUBLISHED", "action": "PUBLISH", "songServerId": repositoryCode,
	})
	if err != nil {
		return "", fmt.Errorf("writing an event: %w", err)
	}
	d.say("\n5. An analysis that the index must refuse is announced: POST /notifications/%s", repositoryCode)
	took, err := d.outcome(ctx, indexName, "rejected", func() error {
		return d.client.send(ctx, "/notifications/"+repositoryCode, event, "")
	})
	if err != nil {
		return "", err
	}
	letters, err := d.client.get(ctx, "/dead-letters?repository="+repositoryCode+"&limit=1")
	if err != nil {
		return "", err
	}
	first := letters.Get("deadLetters.0")
	d.say("   %s rejected    → dead letter %s after %s: %s", whole.ID, first.Get("id"), took, first.Get("engineReason"))
	d.say("   The repository has mended it since; look at the letter and retry it, as shown below.")
	return first.Get("id").String(), d.song.Put(study, whole.Body)
}
