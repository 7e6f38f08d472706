package httpapi

import (
	"math"
	"net/http"

	"github.com/whippet-mq/whippet/libs/wire"
)

// createPartitions serves POST …/partitions.
func createPartitions(c *call) error {
	target, err := c.topic()
	if err != nil {
		return err
	}
	b, err := c.body()
	if err != nil {
		return err
	}
	q := wire.PartitionsRequest{Stream: target.Stream, Topic: target.Topic}
	b.record([]string{"partitions_count"}, 1, func(int) { q.Count = uint32(b.uint(math.MaxUint32)) })
	if err := b.end(); err != nil {
		return err
	}
	return c.write(wire.OpCreatePartitions, q.Append(nil), func([]byte) error {
		c.w.Header().Set("Content-Length", "0")
		c.head(http.StatusOK, "", 0)
		return nil
	})
}

// deletePartitions serves DELETE …/partitions.
func deletePartitions(c *call) error {
	target, err := c.topic()
	if err != nil {
		return err
	}
	query := c.query()
	q := wire.PartitionsRequest{Stream: target.Stream, Topic: target.Topic, Count: query.required("partitions_count")}
	if err := query.err(); err != nil {
		return err
	}
	return c.write(wire.OpDeletePartitions, q.Append(nil), c.noContent)
}

// deleteSegments serves DELETE …/partitions/{partition}: its oldest sealed segments.
func deleteSegments(c *call) error {
	target, err := c.topic()
	if err != nil {
		return err
	}
	q := wire.DeleteSegmentsRequest{Stream: target.Stream, Topic: target.Topic}
	if q.Partition, err = c.number(2); err != nil {
		return err
	}
	query := c.query()
	q.Count = query.required("segments_count")
	if err := query.err(); err != nil {
		return err
	}
	return c.write(wire.OpDeleteSegments, q.Append(nil), c.noContent)
}
