// Times are sent in UTC; here they become the reader's. Everything works without this file.
function localTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]:not(.rel)")) {
    const at = new Date(element.dateTime);
    if (element.dataset.utc || Number.isNaN(at.getTime())) continue;
    element.dataset.utc = element.textContent;
    element.title = element.textContent;
    element.textContent = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  }
}
document.addEventListener("DOMContentLoaded", () => localTimes(document));
document.addEventListener("htmx:afterSwap", (event) => localTimes(event.target));
