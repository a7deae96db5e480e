startSummary();
startNext();
startGraph();
startLayers();
startArena();
document.documentElement.dataset.ready = "yes"; // for who waits until all is drawn
