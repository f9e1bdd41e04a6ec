<?xml version='1.0' encoding='utf-8'?>
<TS version="2.1" sourcelanguage="en">
  <context>
    <name>SketchDNN</name>
    <message>
      <source>The SketchDNN server has stopped before it answered: try again, which starts it anew.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The SketchDNN server takes too long to answer; try again.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>No SketchDNN server answers on port {0}: start it with “sketchdnn serve”, or set its command in Edit → Preferences → SketchDNN.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The server on port {0} needs a token: start one without SKETCHDNN_TOKEN, or set another port in Edit → Preferences → SketchDNN.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The SketchDNN server answers with error {0}: check its version.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Complete sketch</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Suggest what the selected sketch may still need</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Auto-constrain</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Add constraints to the selected sketch, of the kinds you choose</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Close and repair</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Show where the selected sketch is open, and repair it</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Generate sketch</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Generate a new sketch on the selected face or plane</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Import DXF as constrained sketch…</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Read a DXF or SVG drawing, repair it and add constraints</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Import a drawing</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Drawings</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Given geometry stays as it is; additions are blue.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The same seed gives the same suggestions</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Goal</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Seed</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Suggest</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Ask again with this goal and seed</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Something else</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Suggestions unlike those shown so far</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>More like this</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Variations of the selected suggestion</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>closed</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>not closed</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Automatic</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Close the open ends</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Features inside</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Continue outside</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The sketch has no lines, circles, arcs or points; use “Generate sketch” to begin one.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The model has no suggestion for this; try another goal or seed.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The sketch has changed since; ask for suggestions again.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>added: {0}</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Compared with what was asked: {0}</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Coincident</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Point on curve</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Horizontal, vertical</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Parallel, collinear</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Perpendicular</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Tangent</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Equal</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Symmetric</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Dimensions</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Gaps and errors up to this length are drawing errors</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Round dimensions</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Tolerance</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Origin</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Constrain again</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Ask again with these options</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Add these kinds of constraints</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Tie to the origin</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Leave free</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Give free dimensions values such as 80 instead of 79.99</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The sketch has no lines, circles or arcs to constrain.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Nothing can be added: the sketch has these constraints already.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>without some kinds</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The sketch has changed since; constrain again.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>constraints: {0}</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>dimensions: {0}</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>fully constrained</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Geometry moves by up to {0}.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>free: {0}</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The sketch has redundant or conflicting constraints; remove those that the Sketcher lists.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>constraints added: {0}</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>curves added: {0}</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>curves removed: {0}</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>left out because they repeat others or do not hold: {0}</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>automatic</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The larger side of the sketch</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Can be padded</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The same seed gives the same sketches</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Size</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Curves</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Exactly</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Generate</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Generate with these conditions</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The same conditions with the next seed</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Variations of the selected sketch</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Exactly so many; “any” leaves the number to the model</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>any</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Outlines are closed and do not cross</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Dimensions such as 80 instead of 79.99</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The server has generated nothing; change the conditions.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Generated sketch</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>lines</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>circles</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>arcs</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>curves: {0}</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Import DXF as constrained sketch</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Repair</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Units</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Read again</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Read the file with these options</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>As the file says</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>inches</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>feet</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Join ends, remove duplicates, mend near relations</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Add dimensions until nothing is free</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The file has no lines, circles, arcs or points to import.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Select one of the tiles first.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Only the first {0} of {1} sketches are shown.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>{0} cannot be read: {1}.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Progress</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Cancel</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Stop what runs; the panel stays open</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Asking the server…</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Wait until the server has answered, or cancel.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>What the panel was opened for is no longer in the document; close the panel.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>… and {0} more (keep the pointer here).</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Canceled.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Server</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The program “sketchdnn”, or the Python of the environment where it is installed</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Browse…</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Start the server if none answers</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Fewer steps are faster and less exact</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>default</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Command or interpreter</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Port</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Wait for its start</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Sampling steps</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Show the toolbar in Sketcher and Part Design too</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Test</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Takes effect as these workbenches are opened next</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>SketchDNN {0} answers on port {1}, model {2}.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>open ends: {0}</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Open ends</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Gaps and errors up to this length are mended</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Close open outlines with a line</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Repair again</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Repair with these options</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>can be padded</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>cannot be padded</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The sketch has no lines, circles or arcs to repair.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>No wire is open.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>There is no repaired sketch yet; use “Repair again”.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The sketch has changed since; repair again.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>There is nothing to repair.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>X {0}, Y {1}</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The wire is open at {0} ends:</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>After</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Before</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>“{0}” cannot be run: install SketchDNN with “pip install sketchdnn[studio]” and set its command in Edit → Preferences → SketchDNN.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Another program answers on port {0}: set another port in Edit → Preferences → SketchDNN.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Starting the SketchDNN server…</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The SketchDNN server did not start within {0} s: see {1}.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The SketchDNN server ends as it starts ({0}): check its command in the preferences.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>without a message</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The server is busy; waiting…</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>This did not work ({0}); the report view has details.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>coincident</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>point on curve</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>horizontal</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>vertical</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>parallel</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>perpendicular</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>collinear</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>tangent</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>equal</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>concentric</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>midpoint</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>symmetric</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>fixed</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>distance</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>horizontal distance</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>vertical distance</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>length</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>radius</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>diameter</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>angle</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Coincidences</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Geometric relations</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Equal and symmetric</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Lengths</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Lengths without equalities</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Ordinate dimensions</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Rounded dimensions</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>external geometry</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>ellipses</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>arcs of ellipses</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>hyperbolas</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>parabolas</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>B-splines</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The model does not see this geometry, which stays as it is; check that nothing crosses it: {0}.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Complete, constrain, repair, generate and import sketches</source>
      <translation type="unfinished" />
    </message>
  </context>
</TS>