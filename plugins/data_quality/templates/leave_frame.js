// Airflow shows these pages in a frame that may not take its window elsewhere. Links to Airflow's own pages
// are followed by Airflow's document instead; without this they would open a second Airflow inside the frame.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-airflow]");
  if (!link || parent === window || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const outside = parent.document.createElement("a");
  outside.href = link.href;
  parent.document.body.append(outside);
  outside.click();
  outside.remove();
  event.preventDefault();
});
