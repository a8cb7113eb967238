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

	"tutti/internal/tools/testkit/dataset"
)

// webhook changes a record of the tabular repository and notifies tutti like the repository's webhook.
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
		return fmt.Errorf("encoding an event: %w", err)
	}
	d.say("\n4. A record of %s changes in the tabular repository, whose webhook notifies tutti: POST /notifications/%s", organization, tabularCode)
	took, err := d.awaitOutcome(ctx, tabularIndex, "indexed", func() error {
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

// announceRejected announces two analyses that the index rejects, and returns the ids of their dead letters. The repository then fixes the first
// one, so that a retry succeeds.
func (d *demo) announceRejected(ctx context.Context, study string) (fixed, stays string, err error) {
	listed := d.song.Analyses(study)[changedAnalyses+1:]
	d.say("\n5. Two analyses that the index rejects are announced: POST /notifications/%s", repositoryCode)
	if fixed, err = d.reject(ctx, study, listed[0]); err != nil {
		return "", "", err
	}
	if stays, err = d.reject(ctx, study, listed[1]); err != nil {
		return "", "", err
	}
	d.say("   The repository has fixed the first one; show its dead letter and retry it with the commands below.")
	return fixed, stays, d.song.Put(study, listed[0].Body)
}

// reject breaks an analysis, announces it, and returns the id of its dead letter.
func (d *demo) reject(ctx context.Context, study string, whole dataset.Analysis) (letter string, err error) {
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
		return "", fmt.Errorf("encoding an event: %w", err)
	}
	took, err := d.awaitOutcome(ctx, indexName, "rejected", func() error {
		return d.client.send(ctx, "/notifications/"+repositoryCode, event, "")
	})
	if err != nil {
		return "", err
	}
	letters, err := d.client.get(ctx, "/dead-letters?repository="+repositoryCode)
	if err != nil {
		return "", err
	}
	kept := letters.Get(`deadLetters.#(recordId=="` + whole.ID + `")`)
	d.say("   %s rejected    → dead letter %s after %s: %s", whole.ID, kept.Get("id"), took, kept.Get("engineReason"))
	return kept.Get("id").String(), nil
}
