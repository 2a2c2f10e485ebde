import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Client } from "../../clients/js/streamgauge.js";
import { useAnswers } from "./useAnswers.js";

const asked = new URLSearchParams(location.search);
const client = new Client(asked.get("at") ?? "http://127.0.0.1:8765", { token: asked.get("token") ?? undefined });

/** The text of a term in N-Triples. */
const plain = term => term?.replace(/^"((?:[^"\\]|\\.)*)".*$/s, "$1").replace(/^<(.*)>$/s, "$1") ?? "";

function Rooms({ query }) {
  const { answer, state, error, missed } = useAnswers(client, query);
  return (
    <main>
      <h1>Warm rooms</h1>
      <p role="status">{state}{error && `: ${error.message}`}{missed > 0 && `, ${missed} answers missed`}</p>
      {answer && (
        <table>
          <caption>at {new Date(answer.instant).toISOString()}</caption>
          <thead><tr>{answer.vars.map(name => <th key={name} scope="col">{name}</th>)}</tr></thead>
          <tbody>
            {answer.add.map(row => (
              <tr key={row.join(" ")}>{row.map((term, at) => <td key={answer.vars[at]}>{plain(term)}</td>)}</tr>
            ))}
          </tbody>
        </table>
      )}
    </main>
  );
}

createRoot(document.getElementById("rooms")).render(
  <StrictMode><Rooms query={asked.get("query") ?? "warm"} /></StrictMode>
);
