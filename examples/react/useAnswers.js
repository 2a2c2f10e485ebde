import { useEffect, useState } from "react";

/**
 * Live answers of a registered query: `{answer, number, state, error, missed}`.
 *
 * `client` is a `Client` of clients/js that stays the same between renders. After a lost connection the subscription
 * goes on by itself; `state` is then "away". `answer` is the last one that has rows.
 */
export function useAnswers(client, id, { after = 0 } = {}) {
  const [seen, setSeen] = useState({ state: "connecting", missed: 0 });
  useEffect(() => {
    const leaving = new AbortController();
    const change = part => { if (!leaving.signal.aborted) setSeen(known => ({ ...known, ...part })); };
    async function follow() {
      const options = {
        after,
        signal: leaving.signal,
        state: state => change({ state }),
        missed: count => setSeen(known => ({ ...known, missed: known.missed + count })),
      };
      try {
        for await (const { number, data } of client.answers(id, options)) {
          change(data.add?.length ? { number, answer: data } : { number });
        }
        change({ state: "over" });
      } catch (error) {
        change({ state: "failed", error });
      }
    }
    follow();
    return () => leaving.abort();
  }, [client, id, after]);
  return seen;
}
