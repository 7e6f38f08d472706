package journal

import "sync"

// VoteDone is the completion of one batch of votes.
type VoteDone struct {
	Seq uint64
	Err error
}

// VoteWriter saves votes on its own goroutine, for loops that may not wait: all batches submitted
// while a save runs share the next one.
type VoteWriter struct {
	votes  *Votes
	notify func(VoteDone)

	mu      sync.Mutex
	work    sync.Cond
	queue   []Vote
	seqs    []uint64
	closing bool
	gone    sync.WaitGroup
}

// NewVoteWriter starts the goroutine. notify is called on it, once per batch, in order.
func NewVoteWriter(v *Votes, notify func(VoteDone)) *VoteWriter {
	w := &VoteWriter{votes: v, notify: notify}
	w.work.L = &w.mu
	w.gone.Add(1)
	go w.run()
	return w
}

// Submit queues a copy of a batch; false, without a completion, once the writer is closing. It never blocks.
func (w *VoteWriter) Submit(seq uint64, batch []Vote) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing {
		return false
	}
	w.queue = append(w.queue, batch...)
	w.seqs = append(w.seqs, seq)
	w.work.Signal()
	return true
}

func (w *VoteWriter) run() {
	defer w.gone.Done()
	var votes []Vote
	var seqs []uint64
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for len(w.seqs) == 0 && !w.closing {
			w.work.Wait()
		}
		if len(w.seqs) == 0 {
			return
		}
		votes, w.queue = w.queue, votes[:0]
		seqs, w.seqs = w.seqs, seqs[:0]
		w.mu.Unlock()
		err := w.votes.Save(votes)
		for _, seq := range seqs {
			w.notify(VoteDone{seq, err})
		}
		w.mu.Lock()
	}
}

// Close completes what was submitted and ends the goroutine. The votes stay open.
func (w *VoteWriter) Close() {
	w.mu.Lock()
	w.closing = true
	w.work.Signal()
	w.mu.Unlock()
	w.gone.Wait()
}
